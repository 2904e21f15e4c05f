"""How an explanation is shown: in the terminal, as a picture, as a page.

wording             numbers and tokens, in words
selection           which layer and head of attention is shown
terminal            an explanation in the terminal
picture             an explanation as a picture
page                one self-contained HTML file of packed numbers
document            an explanation as such a page; `packing` packs its numbers
output              an explanation as a file of any of these kinds

Parts of them:

flow                words that follow one another in the terminal
heatmap             attention as shades
alignment_terminal  which source words each word of a translation attended to
alignment_picture   the same as words that are linked
hearing_picture     what a transcriber makes of a sound
sound_picture       what it draws of an explanation
word_picture        words as coloured boxes
neighbour_picture   training rows as a small table
table_picture       tables of a study, such as where heads look
image_terminal      an image, what of it counted and where attention looked, in the terminal
image_picture       the same as a picture
matrix_picture      numbers between two rows of words
blocks              parts of a picture that stand below one another
pictures            what all pictures share: formats, colours, fonts
"""

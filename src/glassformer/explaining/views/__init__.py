"""How an explanation is shown.

pictures            what all pictures share: formats, colours, fonts
heatmap             attention as shades in a terminal
alignment_terminal  which source words each word of a translation attended to, in a terminal
alignment_picture   the same as a picture
hearing_picture     what a transcriber makes of a sound, as a picture
packing             the numbers of an explanation, packed for a page
page                an explanation as one self-contained HTML file
"""

"""Images: from folders of pictures to pixels.

    folder -> layouts: rows                     a path and its label
    file   -> reading: 8-bit pixels, grey or RGB, upright -> fitting: one size

In reading order:

bundles   files that hold many images: MNIST's IDX, CIFAR's binary
layouts   data sets of images as rows
reading   any picture as pixels; what cannot be read right is refused
fitting   pixels at the size that a model reads
augment   crops, flips and erasing
"""

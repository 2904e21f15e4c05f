"""Models: frontends, blocks, stacks of blocks, and the models made of them."""

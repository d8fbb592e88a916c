"""Image files of other programs read by us, and ours by them."""

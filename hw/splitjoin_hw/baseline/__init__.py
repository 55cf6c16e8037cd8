"""Other papers' architectures, to compare ours with: simulations run them, and no other part of the product does."""

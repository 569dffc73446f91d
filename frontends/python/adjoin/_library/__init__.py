"""adjoin._library: where packages look for parts of adjoin.library."""

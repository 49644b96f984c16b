"""Matrix products as calls of cuBLAS."""

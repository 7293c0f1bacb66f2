"""The routes, one module per noun. A route reads, shapes and returns; it holds no rule."""

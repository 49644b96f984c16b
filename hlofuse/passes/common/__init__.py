"""What several passes ahead of fusion share: making and replacing instructions, shapes, products, values."""

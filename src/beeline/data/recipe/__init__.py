"""How raw rows become features: columns, categories, scaling."""

"""What the site is made of: pages of the reference, the gallery, charts, and how they look."""

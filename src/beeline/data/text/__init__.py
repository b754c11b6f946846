"""LIBSVM (svmlight) text."""

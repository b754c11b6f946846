"""Random problems at hostile scales for every loss, regularizer, solver and intercept, held against other optima."""

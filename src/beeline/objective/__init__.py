"""The objective: the only place where data, loss, regularizer and engine meet.

The one convention::

    J(w, b) = strength · Ω(w) + Σ_i c_i · l(z_i, y_i),     z = Xw + b

`c_i` carries C and the weights of classes and samples. LIBLINEAR's form has strength 1 and c_i = C·weight_i; BMRM's has
strength λ and c_i = 1/m. The intercept b costs nothing in Ω unless it is `regularized`.

A solver moves a vector θ: the weights w, and last the intercept b if there is one. A loss of K scores a row has K
outputs: w is then a matrix of d rows, and b has K numbers. In θ the K weights of a feature lie side by side, feature
after feature, and the K intercepts come last: one entry of a row meets all its weights at once. Between them lie the
parameters that a loss owns, if it does (`Parameters`).

A solver looks at J through a `Point`, which keeps the scores of every row, and through a `Line`, along which J costs no
pass over the data.
"""

from __future__ import annotations

from beeline.objective.certificates import conjugate_bound, tangent_bound
from beeline.objective.line import Line
from beeline.objective.null import NullModel
from beeline.objective.objective import Objective
from beeline.objective.parameters import Intercept, Parameters
from beeline.objective.penalty import Penalty
from beeline.objective.points import Point

__all__ = [
    "Intercept",
    "Line",
    "NullModel",
    "Objective",
    "Parameters",
    "Penalty",
    "Point",
    "conjugate_bound",
    "tangent_bound",
]

"""What an estimator has learned that may go on."""

from __future__ import annotations

from dataclasses import dataclass

from beeline.fitting.online import Online
from beeline.model import Model

__all__ = ["Learned"]


@dataclass(eq=False)
class Learned:
    """What was trained: a model, or what goes on, whose model is made when somebody asks for it."""

    made: Model | None = None
    online: Online | None = None
    status: str = "unproven"
    feature_names: list[str] | None = None

    @property
    def model(self) -> Model:
        """The model."""
        if self.made is None:
            assert self.online is not None
            self.made = self.online.model(status=self.status, feature_names=self.feature_names)
        return self.made

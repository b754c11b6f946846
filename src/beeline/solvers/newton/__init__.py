"""Newton's method, alone and for many problems in lockstep."""

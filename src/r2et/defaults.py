"""What holds where nobody says otherwise: the same in fit, audit, R2ETClassifier and commands.

The papers' benchmarks, attacks and thickness keep the papers' radius of 1, which spans half of the
data; rows really differ by a tenth to a third of one feature's range.
"""

from typing import Literal

K = 8  # reasons of a table of more features; of fewer, one less than there are
REASONS = 4  # that a person is given, one per column
RADIUS = 0.3  # of the ball in which inputs may move, in features from 0 to 1
RECIPE = "certified"
PICTURE_RECIPE = "r2et"  # of the commands, for pictures and graphs, whose proofs say little
MAX_AUC_DROP = 0.005  # of validation rows, that the penalty of `r2et train` may cost a table
BUDGET: Literal["standard"] = "standard"  # of each attack

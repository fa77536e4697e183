"""What can go wrong in the model package, as one tree of exceptions.

ModelError
  HorizonError     a horizon that the model cannot answer
  LevelError       quantile levels that the model cannot answer
  CheckpointError  a checkpoint that is corrupt, foreign or of another format
  AttentionError   shapes or options that attention cannot take
  ArtifactError    compiled code that is missing, foreign or damaged, or cannot be made
    SelfTestError  compiled code that answers otherwise than its checkpoint
"""

from __future__ import annotations


class ModelError(Exception):
    """Base of all errors of the model package."""


class HorizonError(ModelError):
    """The horizon is not between one step and the model's maximum."""


class LevelError(ModelError):
    """A quantile level lies outside the trained range, or the levels do not ascend."""


class CheckpointError(ModelError):
    """A file that is not a checkpoint of this project, or a damaged one."""


class AttentionError(ModelError, ValueError):
    """Shapes or options that attention cannot take; the message shows what came."""


class ArtifactError(ModelError):
    """Compiled code that is not for this checkpoint or machine, is damaged or cannot be made."""


class SelfTestError(ArtifactError):
    """Compiled code moves the quantiles of its checkpoint farther than it may."""

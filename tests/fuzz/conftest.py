"""Few examples, unless the profile "thorough" is asked for."""

import profiles  # noqa: F401

"""TOML into pydantic models, with problems that name line, key and remedy."""

from .lines import KeyLines as KeyLines
from .parse import KeyPath as KeyPath
from .parse import TomlSyntax as TomlSyntax
from .parse import parse_toml as parse_toml
from .problems import Blankable as Blankable
from .problems import Names as Names
from .problems import Problem as Problem
from .problems import Table as Table
from .problems import dotted as dotted
from .problems import problems as problems
from .problems import unknown_keys as unknown_keys
from .suggest import did_you_mean as did_you_mean
from .suggest import nearest as nearest

"""Serves the plain design."""

from upheld.adapter import serve
from upheld.impl.plain import Plain

serve(Plain())

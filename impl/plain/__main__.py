"""Serves the plain design."""

from streamgate.adapter import serve
from streamgate.impl.plain import Plain

serve(Plain())

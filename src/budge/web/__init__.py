"""The page on which an auditor explores: people, what they can reach, constraints that can be switched.

=============  =====================================================================================
`serve`        the page on this machine, until it is interrupted
`make_app`     the same as an ASGI app, for tests and other servers
`Question`     what is served; `make_question` and `from_run` make one
=============  =====================================================================================
"""

from budge.web.app import make_app
from budge.web.question import Question, from_run, make_question
from budge.web.server import Address, serve

__all__ = ["Address", "Question", "from_run", "make_app", "make_question", "serve"]

"""A dump directory as a film: what each pass did to a module, and one operation's way through all of them."""

from hlofuse.films.filming import film
from hlofuse.films.follow import follow
from hlofuse.films.frames import Reel, reels
from hlofuse.films.journey import Journey
from hlofuse.films.model import Film, Rewrite, Step

__all__ = ["Film", "Journey", "Reel", "Rewrite", "Step", "film", "follow", "reels"]

"""Ids where no `.hlo.pb` carries them: what names, metadata and places tell of who made what when."""

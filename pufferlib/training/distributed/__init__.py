"""One training in many processes, on one machine or several: each is a rank, with environments of its own.

``place`` reads which rank this process is, ``ranks`` lets ranks speak with each other, ``reduction`` is what of a
training they have in common, ``launch`` starts them on this machine, and ``follow`` is what those but the first do.
"""

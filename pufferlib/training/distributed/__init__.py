"""One training in many processes, on one machine or several. Each process is a rank with its own environments.

``place`` reads the rank of this process, ``ranks`` lets ranks communicate, ``reduction`` combines their statistics,
``launch`` starts the other ranks, by ``local`` on this machine or by ``ray`` on a Ray cluster, and ``follow`` runs all
ranks but the first.
"""

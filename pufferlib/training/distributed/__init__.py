"""One training in many processes, on one machine or several. Each process is a rank with its own environments.

``place`` reads the rank of this process, ``ranks`` lets ranks communicate, ``reduction`` combines their statistics,
``local`` starts ranks on this machine, ``ray`` starts them on a Ray cluster, and ``follow`` runs all ranks but the
first.
"""

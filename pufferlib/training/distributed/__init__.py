"""One training in many processes, on one machine or several. Each process is a rank with its own environments.

``place`` reads the rank of this process, ``ranks`` lets ranks communicate, ``reduction`` combines their statistics,
``local`` starts ranks on this machine, and ``launch`` starts them there or on a Ray cluster and sends them their job.
"""

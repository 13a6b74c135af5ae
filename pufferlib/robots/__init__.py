"""MuJoCo robots of Gymnasium and tasks of dm_control in C.

``table`` lists them, ``twin`` finds them, ``robots.h`` has the steps, and ``originals`` begin the episodes.
"""

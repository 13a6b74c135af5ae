"""MuJoCo robots of Gymnasium, stepped in C. ``table`` lists them, ``twin`` finds them, ``robots.h`` has the steps."""

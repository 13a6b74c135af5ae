"""Box2D tasks of Gymnasium in C. ``table`` lists them, ``twin`` finds them, ``box2d.h`` has the games."""

"""Box2D tasks of Gymnasium in C. ``table`` lists them, ``twin`` finds and plays them, ``box2d.h`` has the games."""

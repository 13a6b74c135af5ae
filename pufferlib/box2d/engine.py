"""Functions of Box2D, found in the library of the installed wheel."""

import ctypes
import functools
import warnings
from typing import Any

from pufferlib.registry.games import UnlikeOriginalError

__all__ = ["VERSION", "box2d", "engine"]

VERSION = "2.3.10"  # whose structs engine.h has

#: Names in the library, in the order of ``Box2DEngine`` in ``engine.h``.
FUNCTIONS = (
    "_ZN7b2WorldC1ERK6b2Vec2",
    "_ZN7b2WorldD1Ev",
    "_ZN7b2World10CreateBodyEPK9b2BodyDef",
    "_ZN7b2World11DestroyBodyEP6b2Body",
    "_ZN7b2World11CreateJointEPK10b2JointDef",
    "_ZN7b2World18SetContactListenerEP17b2ContactListener",
    "_ZN7b2World4StepEfii",
    "_ZNK7b2World7RayCastEP17b2RayCastCallbackRK6b2Vec2S4_",
    "_ZN6b2Body13CreateFixtureEPK12b2FixtureDef",
    "_ZN14b2PolygonShape3SetEPK6b2Vec2i",
    "_ZN14b2PolygonShape8SetAsBoxEff",
    "_ZNK15b2RevoluteJoint13GetJointAngleEv",
    "_ZNK15b2RevoluteJoint13GetJointSpeedEv",
    "_ZN15b2RevoluteJoint13SetMotorSpeedEf",
    "_ZN15b2RevoluteJoint17SetMaxMotorTorqueEf",
    "_ZN15b2RevoluteJoint23InitVelocityConstraintsERK12b2SolverData",
    "_ZN15b2RevoluteJoint24SolveVelocityConstraintsERK12b2SolverData",
    "_ZTV14b2PolygonShape",
    "_ZTV11b2EdgeShape",
    "_ZTV15b2RevoluteJoint",
)


def box2d() -> Any:
    """Import and return the package.

    Its classes have no ``__module__``, of which Python warns. If warnings are errors, this one would crash the
    interpreter.

    Raises:
        ImportError: The package is not installed.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "builtin type .* has no __module__ attribute", DeprecationWarning)
        import Box2D
    return Box2D


@functools.cache
def engine() -> tuple[int, ...]:
    """Return the addresses of the ``FUNCTIONS``.

    Raises:
        UnlikeOriginalError: The package has another version, or its library lacks a function.
    """
    package = box2d()
    if package.__version__ != VERSION:
        raise UnlikeOriginalError(f"expected Box2D {VERSION}, found {package.__version__}")
    file = package.Box2D._Box2D.__file__
    try:
        library = ctypes.CDLL(file)
        functions = [getattr(library, name) for name in FUNCTIONS]
    except (OSError, AttributeError) as error:
        raise UnlikeOriginalError(f"expected the functions of Box2D {VERSION} in {file}: {error}") from error
    _touch(package)
    return tuple(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)


def _touch(package: Any) -> None:
    """Let two bodies touch. Box2D fills a global table at the first contact, which threads must not do together."""
    world = package.b2World()
    for make in (world.CreateStaticBody, world.CreateDynamicBody):
        make(shapes=package.b2PolygonShape(box=(1, 1)))
    world.Step(0.02, 1, 1)
    assert world.contactCount == 1

/* The part of Box2D 2.3 that Gymnasium's tasks use.
 *
 * Box2D is not linked. Python passes the addresses of functions of the library in the installed wheel. The layouts of
 * the structs follow from Box2D's classes and from the C++ ABI of Linux. Methods that Box2D defines in its
 * headers are not in the library, so they are written here, with the same order of operations. */
#ifndef PUFFER_BOX2D_ENGINE_H
#define PUFFER_BOX2D_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { BOX2D_WORLD_BYTES = 103296, BOX2D_VERTICES = 16 };

typedef struct {
    float x, y;
} Box2DVec;

typedef struct Box2DBody {
    int32_t type;
    uint16_t flags;
    int32_t island;
    Box2DVec position;
    float sine, cosine;
    Box2DVec local_center, center_before, center;
    float angle_before, angle, advance;
    Box2DVec velocity;
    float angular_velocity;
    Box2DVec force;
    float torque;
    void *world;
    struct Box2DBody *previous, *next;
    void *fixtures;
    int32_t num_fixtures;
    void *joints, *contacts;
    float mass, inverse_mass, inertia, inverse_inertia;
    float linear_damping, angular_damping, gravity_scale, sleep_time;
    void *user_data;
} Box2DBody;

enum { BOX2D_STATIC, BOX2D_KINEMATIC, BOX2D_DYNAMIC }; /* type of a body */
enum { BOX2D_AWAKE = 2 };                              /* flag of a body */

typedef struct {
    int32_t type;
    Box2DVec position;
    float angle;
    Box2DVec velocity;
    float angular_velocity, linear_damping, angular_damping;
    bool allows_sleep, is_awake, is_rotation_fixed, is_bullet, is_active;
    void *user_data;
    float gravity_scale;
} Box2DBodyDef;

typedef struct {
    uint16_t category, mask;
    int16_t group;
} Box2DFilter;

typedef struct {
    const void *shape;
    void *user_data;
    float friction, restitution, density;
    bool is_sensor;
    Box2DFilter filter;
} Box2DFixtureDef;

typedef struct {
    float density;
    void *next;
    Box2DBody *body;
    void *shape;
    float friction, restitution;
    void *proxies;
    int32_t num_proxies;
    Box2DFilter filter;
} Box2DFixture; /* its first fields */

typedef struct {
    const void *methods;
    int32_t type;
    float radius;
} Box2DShape; /* the fields that all shapes have */

enum { BOX2D_EDGE = 1, BOX2D_POLYGON = 2 }; /* type of a shape */

typedef struct {
    Box2DShape shape;
    Box2DVec centroid, vertices[BOX2D_VERTICES], normals[BOX2D_VERTICES];
    int32_t num_vertices;
} Box2DPolygon;

typedef struct {
    Box2DShape shape;
    Box2DVec from, to, before, after;
    bool has_before, has_after;
} Box2DEdge;

enum { BOX2D_REVOLUTE = 1 }; /* type of a joint */

typedef struct {
    int32_t type;
    void *user_data;
    Box2DBody *body_a, *body_b;
    bool collides;
    Box2DVec anchor_a, anchor_b; /* relative to the bodies */
    float reference_angle;
    bool has_limits;
    float lower, upper;
    bool has_motor;
    float motor_speed, max_torque;
} Box2DJointDef;

typedef struct {
    void *body, *contact, *previous, *next;
} Box2DContactEdge;

typedef struct {
    const void *methods;
    uint32_t flags;
    void *previous, *next;
    Box2DContactEdge edge_a, edge_b;
    Box2DFixture *fixture_a, *fixture_b;
} Box2DContact; /* its first fields */

/* A C++ object whose methods are C functions. A table of methods begins with two destructors, which Box2D never calls. */
typedef struct {
    void *destructors[2];
    void (*begin)(void *listener, const Box2DContact *contact);
    void (*end)(void *listener, const Box2DContact *contact);
    void (*pre_solve)(void *listener, void *contact, const void *manifold);
    void (*post_solve)(void *listener, void *contact, const void *impulse);
} Box2DListenerMethods;

typedef struct {
    void *destructors[2];
    float (*report)(void *ray, const Box2DFixture *fixture, const Box2DVec *point, const Box2DVec *normal,
                    float fraction);
} Box2DRayMethods;

typedef struct Box2DIsland Box2DIsland;

/* A method of joints that solves constraints. */
typedef void (*Box2DJointMethod)(void *joint, const Box2DIsland *island);

/* Places in the table of methods of a joint. The table begins with two words of type information. */
enum { BOX2D_BEGIN_SLOT = 10, BOX2D_JOINT_METHODS = 13 };

/* Functions of Box2D, in the order of FUNCTIONS in engine.py. The last three are tables of methods. */
typedef struct {
    void (*make_world)(void *world, const Box2DVec *gravity);
    void (*destroy_world)(void *world);
    Box2DBody *(*make_body)(void *world, const Box2DBodyDef *def);
    void (*destroy_body)(void *world, Box2DBody *body);
    void *(*make_joint)(void *world, const Box2DJointDef *def);
    void (*set_listener)(void *world, void *listener);
    void (*step)(void *world, float seconds, int32_t velocity_rounds, int32_t position_rounds);
    void (*cast_ray)(const void *world, void *ray, const Box2DVec *from, const Box2DVec *to);
    void *(*make_fixture)(Box2DBody *body, const Box2DFixtureDef *def);
    void (*set_polygon)(Box2DPolygon *polygon, const Box2DVec *points, int32_t count);
    void (*set_box)(Box2DPolygon *polygon, float half_width, float half_height);
    float (*joint_angle)(const void *joint);
    float (*joint_speed)(const void *joint);
    void (*set_motor_speed)(void *joint, float speed);
    void (*set_max_torque)(void *joint, float torque);
    Box2DJointMethod begin_joint, solve_joint;
    const void *polygon_methods, *edge_methods, *usual_joint_methods;
    Box2DJointMethod joint_methods[BOX2D_JOINT_METHODS]; /* filled by box2d_take_joints */
} Box2DEngine;

enum { BOX2D_FUNCTIONS = offsetof(Box2DEngine, joint_methods) / sizeof(void *) };

/* ---- Bodies ------------------------------------------------------------------------------------------- */

#define BOX2D_POLYGON_RADIUS (2.0f * 0.005f)

static inline Box2DVec box2d_vec(double x, double y) {
    return (Box2DVec){(float)x, (float)y};
}

/* Returns the start of a shape. Its methods are behind the two words of type information that a C++ table begins with. */
static inline Box2DShape box2d_shape(const void *methods, int32_t type) {
    return (Box2DShape){(const char *)methods + 2 * sizeof(void *), type, BOX2D_POLYGON_RADIUS};
}

static inline Box2DPolygon box2d_polygon(const Box2DEngine *engine, const Box2DVec *points, int32_t count) {
    Box2DPolygon polygon = {.shape = box2d_shape(engine->polygon_methods, BOX2D_POLYGON)};
    engine->set_polygon(&polygon, points, count);
    return polygon;
}

static inline Box2DPolygon box2d_box(const Box2DEngine *engine, double half_width, double half_height) {
    Box2DPolygon polygon = {.shape = box2d_shape(engine->polygon_methods, BOX2D_POLYGON)};
    engine->set_box(&polygon, (float)half_width, (float)half_height);
    return polygon;
}

static inline Box2DEdge box2d_edge(const Box2DEngine *engine, Box2DVec from, Box2DVec to) {
    return (Box2DEdge){.shape = box2d_shape(engine->edge_methods, BOX2D_EDGE), .from = from, .to = to};
}

static inline Box2DFixtureDef box2d_fixture(const void *shape, double density, double friction,
                                            uint16_t category, uint16_t mask) {
    return (Box2DFixtureDef){.shape = shape,
                             .density = (float)density,
                             .friction = (float)friction,
                             .filter = {.category = category, .mask = mask}};
}

/* Makes a body with one fixture. */
static inline Box2DBody *box2d_body(const Box2DEngine *engine, void *world, int32_t type, Box2DVec position,
                                    double angle, const Box2DFixtureDef *fixture) {
    const Box2DBodyDef def = {.type = type,
                              .position = position,
                              .angle = (float)angle,
                              .allows_sleep = true,
                              .is_awake = true,
                              .is_active = true,
                              .gravity_scale = 1};
    Box2DBody *body = engine->make_body(world, &def);
    engine->make_fixture(body, fixture);
    return body;
}

static inline void box2d_wake(Box2DBody *body) {
    if (body->flags & BOX2D_AWAKE) return;
    body->flags |= BOX2D_AWAKE;
    body->sleep_time = 0;
}

static inline void box2d_force(Box2DBody *body, Box2DVec force) {
    box2d_wake(body);
    body->force.x += force.x;
    body->force.y += force.y;
}

static inline void box2d_torque(Box2DBody *body, float torque) {
    box2d_wake(body);
    body->torque += torque;
}

/* Applies an impulse at a point of the world. */
static inline void box2d_impulse(Box2DBody *body, Box2DVec impulse, Box2DVec point) {
    const Box2DVec arm = {point.x - body->center.x, point.y - body->center.y};
    box2d_wake(body);
    body->velocity.x += body->inverse_mass * impulse.x;
    body->velocity.y += body->inverse_mass * impulse.y;
    body->angular_velocity += body->inverse_inertia * (arm.x * impulse.y - arm.y * impulse.x);
}

#endif

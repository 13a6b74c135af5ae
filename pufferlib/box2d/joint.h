/* Velocity constraints of revolute joints, which take most of the time of a step, solved here instead of in Box2D.
 *
 * Box2D solves them 180 times in a step, and inverts the same matrices each time. Here they are inverted once. Results
 * are the same byte by byte, so operations have Box2D's order. Joints get a table of methods in which two are
 * replaced. */
#ifndef PUFFER_BOX2D_JOINT_H
#define PUFFER_BOX2D_JOINT_H

#include "engine.h"

typedef struct {
    float x, y, z;
} Box2DVec3;

typedef enum { BOX2D_NO_LIMIT, BOX2D_LOWER_LIMIT, BOX2D_UPPER_LIMIT, BOX2D_EQUAL_LIMITS } Box2DLimit;

/* What the constraints of a joint need that is constant during a step. */
typedef struct {
    const Box2DEngine *engine;
    Box2DVec3 across; /* product of the second and the third column of the mass matrix */
    float inverse_of_three,
        inverse_of_two; /* inverse determinants of the mass matrix, and of its first two rows */
} Box2DSolver;

/* A revolute joint. */
typedef struct {
    const void *methods;
    int32_t type;
    void *previous, *next;
    Box2DContactEdge edges[2];
    Box2DBody *body_a, *body_b;
    int32_t index;
    bool is_in_island, collides;
    Box2DSolver *solver; /* Box2D's user data */
    Box2DVec anchor_a, anchor_b;
    Box2DVec3 impulse;
    float motor_impulse;
    bool has_motor;
    float max_torque, motor_speed;
    bool has_limits;
    float reference_angle, lower, upper;
    int32_t index_a, index_b; /* of the bodies' velocities */
    Box2DVec arm_a, arm_b, local_center_a, local_center_b;
    float inverse_mass_a, inverse_mass_b, inverse_inertia_a, inverse_inertia_b;
    Box2DVec3 mass[3]; /* columns of the effective mass */
    float motor_mass;
    int32_t limit;
} Box2DJoint;

typedef struct {
    Box2DVec linear;
    float angular;
} Box2DVelocity;

/* A time step, and the bodies of an island. */
struct Box2DIsland {
    float seconds, inverse_seconds, ratio;
    int32_t velocity_rounds, position_rounds;
    bool is_warm;
    void *positions;
    Box2DVelocity *velocities;
};

static inline Box2DVec3 box2d_cross(Box2DVec3 a, Box2DVec3 b) {
    return (Box2DVec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline float box2d_dot(Box2DVec3 a, Box2DVec3 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline float box2d_turn(Box2DVec arm, Box2DVec impulse) {
    return arm.x * impulse.y - arm.y * impulse.x;
}

static inline float box2d_inverse(float number) {
    return number != 0 ? 1 / number : number;
}

/* Returns the vector that the mass matrix maps to `b`. */
static inline Box2DVec3 box2d_solve3(const Box2DJoint *joint, Box2DVec3 b) {
    const Box2DVec3 *mass = joint->mass;
    const float inverse = joint->solver->inverse_of_three;
    return (Box2DVec3){inverse * box2d_dot(b, joint->solver->across),
                       inverse * box2d_dot(mass[0], box2d_cross(b, mass[2])),
                       inverse * box2d_dot(mass[0], box2d_cross(mass[1], b))};
}

static inline Box2DVec box2d_solve2(const Box2DJoint *joint, Box2DVec b) {
    const Box2DVec3 *mass = joint->mass;
    const float inverse = joint->solver->inverse_of_two;
    return (Box2DVec){inverse * (mass[1].y * b.x - mass[1].x * b.y),
                      inverse * (mass[0].x * b.y - mass[0].y * b.x)};
}

static void box2d_begin_joint(void *object, const Box2DIsland *island) {
    Box2DJoint *joint = object;
    const Box2DVec3 *mass = joint->mass;
    Box2DSolver *solver = joint->solver;
    solver->engine->begin_joint(joint, island);
    solver->across = box2d_cross(mass[1], mass[2]);
    solver->inverse_of_three = box2d_inverse(box2d_dot(mass[0], solver->across));
    solver->inverse_of_two = box2d_inverse(mass[0].x * mass[1].y - mass[1].x * mass[0].y);
}

static void box2d_solve_joint(void *object, const Box2DIsland *island) {
    Box2DJoint *joint = object;
    Box2DVelocity *a = &island->velocities[joint->index_a], *b = &island->velocities[joint->index_b];
    const float mass_a = joint->inverse_mass_a, mass_b = joint->inverse_mass_b;
    const float inertia_a = joint->inverse_inertia_a, inertia_b = joint->inverse_inertia_b;
    const Box2DVec arm_a = joint->arm_a, arm_b = joint->arm_b;
    Box2DVec va = a->linear, vb = b->linear, push;
    float wa = a->angular, wb = b->angular;
    const bool can_turn = inertia_a + inertia_b != 0;
    if (joint->has_motor && joint->limit != BOX2D_EQUAL_LIMITS && can_turn) {
        const float most = island->seconds * joint->max_torque, before = joint->motor_impulse;
        const float wanted = before + -joint->motor_mass * (wb - wa - joint->motor_speed);
        const float below = wanted < most ? wanted : most;
        joint->motor_impulse = -most > below ? -most : below;
        wa -= inertia_a * (joint->motor_impulse - before);
        wb += inertia_b * (joint->motor_impulse - before);
    }
    const Box2DVec slip = {vb.x + -wb * arm_b.y - va.x - -wa * arm_a.y,
                           vb.y + wb * arm_b.x - va.y - wa * arm_a.x};
    const bool is_limited = joint->has_limits && joint->limit != BOX2D_NO_LIMIT && can_turn;
    float twist = 0;
    if (is_limited) {
        const Box2DVec3 solved = box2d_solve3(joint, (Box2DVec3){slip.x, slip.y, wb - wa});
        const float total = joint->impulse.z + -solved.z;
        /* A limit only pushes. */
        if ((joint->limit == BOX2D_LOWER_LIMIT && total < 0) ||
            (joint->limit == BOX2D_UPPER_LIMIT && total > 0)) {
            const float z = joint->impulse.z;
            push = box2d_solve2(joint,
                                (Box2DVec){-slip.x + z * joint->mass[2].x, -slip.y + z * joint->mass[2].y});
            twist = -z;
            joint->impulse.z = 0;
        } else {
            push = (Box2DVec){-solved.x, -solved.y};
            twist = -solved.z;
            joint->impulse.z = total;
        }
    } else {
        push = box2d_solve2(joint, (Box2DVec){-slip.x, -slip.y});
    }
    joint->impulse.x += push.x;
    joint->impulse.y += push.y;
    const float turn_a = box2d_turn(arm_a, push), turn_b = box2d_turn(arm_b, push);
    a->linear = (Box2DVec){va.x - mass_a * push.x, va.y - mass_a * push.y};
    b->linear = (Box2DVec){vb.x + mass_b * push.x, vb.y + mass_b * push.y};
    a->angular = wa - inertia_a * (is_limited ? turn_a + twist : turn_a);
    b->angular = wb + inertia_b * (is_limited ? turn_b + twist : turn_b);
}

/* Fills the table of methods of joints. If Box2D's own table is not as expected, it stays as it is. */
static inline void box2d_take_joints(Box2DEngine *engine) {
    memcpy(engine->joint_methods, engine->usual_joint_methods, sizeof engine->joint_methods);
    Box2DJointMethod *slots = &engine->joint_methods[BOX2D_BEGIN_SLOT];
    if (slots[0] != engine->begin_joint || slots[1] != engine->solve_joint) return;
    slots[0] = box2d_begin_joint;
    slots[1] = box2d_solve_joint;
}

#endif

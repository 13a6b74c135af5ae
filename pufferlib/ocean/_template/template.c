#include "template.h"
PUFFER_ENV(Template, template, PUFFER_KEYS(template_keys))

#include "template.h"
PUFFER_ENV(Template, template)

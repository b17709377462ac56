#pragma once

#include "Handle.h"

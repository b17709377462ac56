#pragma once

#include "dice_thrust.h"

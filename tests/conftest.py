"""How hypothesis behaves in all rooms: it judges what code does, never how long a busy machine took for it."""

from hypothesis import HealthCheck, settings

settings.register_profile("ropewalk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ropewalk")

from hypothesis import settings

# A busy machine must not fail a test: no limit of time for an example, and the same ones each time.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")

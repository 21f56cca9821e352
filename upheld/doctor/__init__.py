"""The doctor: it starts an application once, and says what is wrong with it.

Nothing is asked of the application. The doctor reads its requests to the broker, its process and
its outputs.
"""

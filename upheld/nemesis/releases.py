"""Two releases of a design, of which one takes over from the other."""

from upheld.history.events import Release
from upheld.history.marks import Happening
from upheld.trial.application import Application
from upheld.trial.instances import Launch
from upheld.trial.trial import Trial
from upheld.verdicts import NotOffered


def start(trial: Trial, application: Application, launch: Launch, name: str = "a") -> bool:
    """Start an instance, and return whether it works.

    A release that refuses to follow another one is started once more: a refusal is no accident. If
    its release follows another one, the topics that are not the harness's are marked, as they
    were before the start and after it.

    Args:
        trial: The attempt.
        application: The application that the instance runs.
        launch: How it starts; it may say of which release the instance is.
        name: The name of the instance.
    """
    is_second = bool(launch.release and trial.recorder.releases)
    before = internal_topics(trial) if is_second else {}
    instance = trial.instances.start(application, name, launch)
    if is_second and instance is None:
        # A supervisor starts it again. What goes through then was no refusal.
        trial.instances.let_go(application, name)
        instance = trial.instances.start(application, name, launch)
    if is_second:
        after = internal_topics(trial)
        said = Happening.RELEASE_STARTED.text.format(which=launch.release)
        if new := [topic for topic in after if topic not in before]:
            said = f"{said}, and makes {', '.join(new)}"
        trial.mark(
            Happening.RELEASE_STARTED,
            said,
            refused=instance is None,
            topics_before=before,
            topics_after=after,
        )
    return instance is not None


def take_over(trial: Trial, application: Application, release: Release) -> None:
    """Start instance a of a release, which has to start.

    Raises:
        NotOffered: It refuses to start after the other one, so nothing is left to be judged.
    """
    launch = Launch(release=release, may_refuse=bool(trial.recorder.releases))
    if not start(trial, application, launch):
        trial.instances.let_go(application, "a")
        raise NotOffered(
            f"the {release} release of {trial.manifest.name} refuses to start after the other one, "
            "so nothing can be rolled back"
        )


def join(trial: Trial, application: Application, name: str) -> None:
    """Start an instance of the later release beside the others."""
    start(trial, application, Launch(release="later"), name)


def internal_topics(trial: Trial) -> dict[str, int]:
    """Return the topics that the harness did not make, with their partitions."""
    made = {
        topic
        for application in trial.applications.values()
        for topic in application.event.topics.values()
    }
    found = trial.reading.sizes(trial.application_id)
    return {topic: number for topic, number in sorted(found.items()) if topic not in made}

"""Core parts: the parts of one SWIM core, built once and wired."""

from smg_mesh.config import SwimOptions
from smg_mesh.swim.announcer import Announcer
from smg_mesh.swim.detection.indirect_probes import Relays
from smg_mesh.swim.detection.local_health import Health
from smg_mesh.swim.detection.name_conflict import Namesake
from smg_mesh.swim.detection.partition_healing import Healer
from smg_mesh.swim.detection.prober import Prober
from smg_mesh.swim.detection.running_suspicions import RunningSuspicions
from smg_mesh.swim.detection.self_refutation import SelfRefutation
from smg_mesh.swim.detection.tcp_pings import StreamPings
from smg_mesh.swim.dissemination.exchange_schedule import Exchanges
from smg_mesh.swim.dissemination.leave import Leave
from smg_mesh.swim.dissemination.packet_sender import Identity, PacketSender
from smg_mesh.swim.effects import Rng
from smg_mesh.swim.member_updates import MemberUpdates
from smg_mesh.swim.members.member_table import Members


class Parts:
    """Parts that `Swim` consists of. None of them knows one that is above it here."""

    def __init__(self, me: Identity, options: SwimOptions, rng: Rng) -> None:
        self.members = Members(options)
        self.voice = PacketSender(me, options, rng, self.members)
        self.health = Health()
        self.streams = StreamPings(self.voice)
        self.prober = Prober(self.voice, self.members, self.health, self.streams)
        self.doubts = RunningSuspicions(
            self.voice, self.members, self.streams, stall_ms=self.prober.stall_ms
        )
        self.relays = Relays(self.voice)
        self.announcer = Announcer(self.voice)
        self.exchanges = Exchanges(self.voice, self.members)
        self.healer = Healer(self.voice, self.members)
        self.namesake = Namesake(self.voice, self.streams)
        self.defence = SelfRefutation(self.voice, self.members, self.health, self.namesake)
        self.farewell = Leave(self.voice, self.members)
        self.claims = MemberUpdates(
            self.voice,
            self.members,
            self.prober,
            self.doubts,
            self.announcer,
            self.exchanges,
            self.healer,
        )

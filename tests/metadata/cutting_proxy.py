"""A TCP proxy that lets requests through and may keep the answers, so that nobody knows what became of them."""

import asyncio
from enum import Enum


class Mood(Enum):
    HONEST = "passes everything on"
    CUTS = "ends the connection when an answer comes"
    SWALLOWS = "keeps answers to itself"


class CuttingProxy:
    def __init__(self, target_port: int) -> None:
        self.mood = Mood.HONEST
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Answers its URL."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for pipe in self._pipes:
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        loop = asyncio.get_running_loop()
        pipes = [
            loop.create_task(self._pass_on(reader, back_writer, are_answers=False)),
            loop.create_task(self._pass_on(back_reader, writer, are_answers=True)),
        ]
        self._pipes.update(pipes)
        try:
            await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pipe in pipes:
                pipe.cancel()
            self._pipes.difference_update(pipes)
            writer.close()
            back_writer.close()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, are_answers: bool
    ) -> None:
        while data := await reader.read(65_536):
            if are_answers and self.mood is Mood.CUTS:
                return
            if are_answers and self.mood is Mood.SWALLOWS:
                continue
            writer.write(data)
            await writer.drain()

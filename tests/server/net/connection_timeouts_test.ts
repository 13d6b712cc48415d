import { startTcpProxy } from "../../../src/server/net/connection_timeouts.ts";
import { FakeClock } from "../../../src/sdk/testing/clocks.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("a connection ends after its last response, however late the server sends it", async () => {
  using server = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const clock = new FakeClock();
  const proxy = startTcpProxy({ hostname: "127.0.0.1", port: 0 }, (server.addr as Deno.NetAddr).port, clock);
  const client = await Deno.connect({ hostname: "127.0.0.1", port: proxy.addr.port });
  const answer = new Response(client.readable).text();
  await client.write(new TextEncoder().encode("request"));
  using connection = await server.accept();
  await connection.read(new Uint8Array(7));
  const end = proxy.connectionOf(connection.remoteAddr.port)!.begin();
  end(true); // the response is complete for the handler, but none of it has been sent
  await clock.advance(1_000);
  await connection.write(new TextEncoder().encode("response"));
  await connection.closeWrite();
  assertEquals(await answer, "response");
  await proxy.stop();
});

/** Returns a port of this machine that is free now; another program may take it meanwhile. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

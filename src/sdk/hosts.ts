/** Compares hosts of URLs with grants. */

/**
 * Returns whether a `net` permission of a plan covers the host and port of a URL. An entry is `host`,
 * `host:port` or `*.host`, which is the host and its subdomains; without a port it covers every port.
 */
export function isHostGranted(
  granted: boolean | readonly string[] | undefined,
  { protocol, hostname, port }: URL,
): boolean {
  if (typeof granted === "boolean" || granted === undefined) return granted ?? false;
  const own_port = port || (protocol === "https:" ? "443" : "80");
  return granted.some((entry) => {
    const [, host = "", entry_port] = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
    if (entry_port !== undefined && entry_port !== own_port) return false;
    if (!host.startsWith("*.")) return host === hostname;
    return hostname === host.slice(2) || hostname.endsWith(host.slice(1));
  });
}

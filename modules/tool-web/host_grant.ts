/** Which hosts a grant of `net` reaches. */
import type { GrantedPermissions } from "preamp/base";
import { WebError } from "preamp/web";

/** The hosts of a grant. */
export interface HostGrant {
  /** @throws {WebError} for a URL whose host is not granted. */
  check(url: URL): void;
  /** Returns true for a host that the plan names, and which may be private for that reason. */
  names(hostname: string): boolean;
}

/**
 * Returns the hosts of `permissions.net`; null when it grants nothing. `true` grants every host. An entry is
 * `host`, `host:port` or `*.domain`; without a port it grants every port.
 */
export function hostGrant(net: GrantedPermissions["net"]): HostGrant | null {
  const entries = Array.isArray(net) ? net : [];
  if (net !== true && entries.length === 0) return null;
  return {
    check(url) {
      if (net === true || entries.some((entry) => covers(entry, url))) return;
      throw new WebError(`the plan does not permit ${url.host}: it permits ${entries.join(", ")}`);
    },
    names: (hostname) => entries.some((entry) => !entry.startsWith("*.") && hostOf(entry) === hostname),
  };
}

function covers(entry: string, url: URL): boolean {
  const host = hostOf(entry);
  const port = entry.slice(host.length + 1);
  if (port !== "" && port !== (url.port || (url.protocol === "https:" ? "443" : "80"))) return false;
  return host.startsWith("*.") ? url.hostname.endsWith(host.slice(1)) : url.hostname === host;
}

/** Returns the host of an entry; an IPv6 address with its brackets, as in a URL. */
function hostOf(entry: string): string {
  return /^\[[^\]]*\]/.exec(entry)?.[0] ?? entry.replace(/:\d+$/, "");
}

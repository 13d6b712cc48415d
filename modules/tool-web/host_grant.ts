/** Which hosts a grant of `net` reaches. */
import { type GrantedPermissions, isHostGranted } from "preamp/base";
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
      if (isHostGranted(net, url)) return;
      throw new WebError(`the plan does not permit ${url.host}: it permits ${entries.join(", ")}`);
    },
    names: (hostname) => entries.some((entry) => !entry.startsWith("*.") && hostOf(entry) === hostname),
  };
}

/** Returns the host of an entry; an IPv6 address with its brackets, as in a URL. */
function hostOf(entry: string): string {
  return /^\[[^\]]*\]/.exec(entry)?.[0] ?? entry.replace(/:\d+$/, "");
}

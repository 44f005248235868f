"""The network that an internet address belongs to."""

from ipaddress import ip_address, ip_network


def network(address: str | None) -> str:
    """The address itself (IPv4), or its /64 prefix (IPv6), which one visitor may have; empty if local or unknown."""
    try:
        found = ip_address(address or "")
    except ValueError:  # whatever a proxy tells
        return ""
    found = getattr(found, "ipv4_mapped", None) or found
    if found.is_loopback:
        return ""
    return str(found) if found.version == 4 else str(ip_network((int(found) >> 64 << 64, 64)))

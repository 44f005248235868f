"""Whose an address of the internet is."""

from ipaddress import ip_address, ip_network


def network(address: str | None) -> str:
    """Whose an address is: itself, or the 64 bits of IPv6 that one visitor may have; empty of this computer, or unknown."""
    try:
        found = ip_address(address or "")
    except ValueError:  # whatever a proxy tells
        return ""
    found = getattr(found, "ipv4_mapped", None) or found
    if found.is_loopback:
        return ""
    return str(found) if found.version == 4 else str(ip_network((int(found) >> 64 << 64, 64)))

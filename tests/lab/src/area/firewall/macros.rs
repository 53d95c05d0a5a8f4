//! The macros that rules may name.

/// All of them, as PVE spells them.
pub(super) const MACROS: &[&str] = &[
    "Amanda", "Auth", "BGP", "BitTorrent", "BitTorrent32", "CVS", "Ceph", "Citrix", "DAAP", "DCC", "DHCPfwd",
    "DHCPv6", "DNS", "Distcc", "FTP", "Finger", "GNUnet", "GRE", "Git", "HKP", "HTTP", "HTTPS", "ICPV2", "ICQ",
    "IMAP", "IMAPS", "IPIP", "IPsec", "IPsecah", "IPsecnat", "IRC", "Jetdirect", "L2TP", "LDAP", "LDAPS", "MDNS",
    "MSNP", "MSSQL", "Mail", "Munin", "MySQL", "NNTP", "NNTPS", "NTP", "NeighborDiscovery", "OSPF", "OpenVPN", "PCA",
    "PMG", "POP3", "POP3S", "PPtP", "Ping", "PostgreSQL", "Printer", "RDP", "RIP", "RNDC", "Razor", "Rdate", "Rsync",
    "SANE", "SMB", "SMBswat", "SMTP", "SMTPS", "SNMP", "SPAMD", "SPICEproxy", "SSH", "SVN", "SixXS", "Squid",
    "Submission", "Syslog", "TFTP", "Telnet", "Telnets", "Time", "Trcrt", "VNC", "VNCL", "Web", "Webcache", "Webmin",
    "Whois",
];

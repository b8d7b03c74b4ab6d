"""The cluster's certificates: one authority, a certificate for each program, all in one folder."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = datetime.timedelta(days=1)


class Pki:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._key = self.make_key("ca")
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.ca = self._write("ca.crt", certificate.public_bytes(serialization.Encoding.PEM))

    def make_key(self, name: str) -> ec.EllipticCurvePrivateKey:
        """Writes NAME.key and, as the API server wants it of service accounts' keys, NAME.pub."""
        key = ec.generate_private_key(ec.SECP256R1())
        pem = serialization.Encoding.PEM
        private = key.private_bytes(
            pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._write(f"{name}.key", private)
        self._write(f"{name}.pub", public)
        return key

    def client(self, file: str, user: str, group: str | None = None) -> None:
        """Writes FILE.crt and FILE.key, by which the API server knows `user` of `group`."""
        self._issue(file, user, group, [], ExtendedKeyUsageOID.CLIENT_AUTH)

    def server(self, file: str, names: list[str]) -> None:
        """Writes FILE.crt and FILE.key for a server under these DNS names and addresses."""
        self._issue(file, file, None, names, ExtendedKeyUsageOID.SERVER_AUTH)

    def _issue(
        self, file: str, user: str, group: str | None, names: list[str], usage: x509.ObjectIdentifier
    ) -> None:
        subject = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
        if group:
            subject.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
        key = self.make_key(file)
        builder = _builder(x509.Name(subject), self._name, key).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(n) for n in names]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        self._write(f"{file}.crt", certificate.public_bytes(serialization.Encoding.PEM))

    def _write(self, name: str, text: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text)
        return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.utcnow()  # a scenario may set a clock back or forth
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
